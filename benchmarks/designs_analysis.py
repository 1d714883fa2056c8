import json, sys, numpy as np

lines = [json.loads(l) for l in open(sys.argv[1])]
g = np.random.default_rng(1)
pairs = [l for l in lines if l["kind"] == "pair" and not any(l["problems"])]
print("problems", [l["problems"] for l in lines if l["kind"] == "pair" and any(l["problems"])][:3])
BASE, FAST = "baseline", "mimalloc-retain"


def chunks(p, arm):
    return np.array([c["step_s"] for c in p["chunks"] if c["arm"] == arm and len(c["step_s"]) == 12])


def warm(p, arm):
    return [c for c in p["chunks"] if c["arm"] == arm and len(c["step_s"]) != 12][0]


def table(turns):
    ps = [p for p in pairs if p["turns"] == turns]
    X = np.array([[chunks(p, BASE), chunks(p, FAST)] for p in ps])  # pairs x arm x chunk x step
    over = np.array([p["seconds"] - x.sum() for p, x in zip(ps, X)])
    return ps, X, over


def comp(X):
    m = np.log(X.mean(axis=3))
    d = m[:, 0] - m[:, 1]
    J = d.shape[1]
    within = d.var(axis=1, ddof=1).mean()
    between = d.mean(axis=1).var(ddof=1) * J
    step = (np.log(X).var(axis=3, ddof=1).mean(axis=(0, 2))).sum() / X.shape[3]
    r = m - m.mean(axis=2, keepdims=True)
    cov = (r[:, 0] * r[:, 1]).sum() / (len(X) * (J - 1))
    return np.array([(between - within) / J, within - step, step, within, between / J, cov])


def boot(f, X, B=2000):
    n = len(X)
    return np.array([f(X[g.integers(n, size=n)]) for _ in range(B)])


def iv(b):
    return np.quantile(b, [0.025, 0.975], axis=0)


for turns in (True, False):
    ps, X, over = table(turns)
    print(
        "\nTURNS" if turns else "\nALONE",
        len(ps),
        "pairs; seconds",
        np.mean([p["seconds"] for p in ps]),
        "overhead",
        over.mean(),
        over.std(),
        "import",
        np.mean([p["imported_s"] for p in ps]),
        "ms",
        1000 * X.mean(axis=(0, 2, 3)),
        "ratio",
        np.exp(np.log(X.mean(axis=(2, 3))).mean(axis=0)[0] - np.log(X.mean(axis=(2, 3))).mean(axis=0)[1]),
    )
    c = comp(X)
    lo, hi = iv(boot(comp, X))
    for n, a, b, e in zip(("process", "chunk", "step/12", "within", "total of mean", "cov of arms' chunks"), c, lo, hi):
        print(f"  {n}: {a:.5f} ({b:.5f} {e:.5f}) sd {np.sqrt(max(a, 0)):.3f}")
    for arm in (0, 1):
        m = np.log(X[:, arm].mean(axis=2))
        w = m.var(axis=1, ddof=1).mean()
        b = m.mean(axis=1).var(ddof=1)
        print(
            "  arm",
            arm,
            "process var",
            b - w / m.shape[1],
            "chunk var",
            w,
            "lag1 autocorr chunk",
            np.mean([(r[1:] * r[:-1]).sum() / (r * r).sum() for r in m - m.mean(axis=1, keepdims=True)]),
        )
    flat = X.reshape(len(X), 2, -1)

    def V(flat, n):
        return np.log(flat[:, 0, :n].mean(axis=1) / flat[:, 1, :n].mean(axis=1)).var(ddof=1)

    ref = None
    for n in (6, 12, 24, 36, 48, 72, 96, 144):
        T = over.mean() + n * X.mean(axis=(0, 2, 3)).sum()
        b = boot(lambda Z: V(Z, n), flat)
        b0 = None
        idx = g.integers(len(flat), size=(2000, len(flat)))
        T12 = over.mean() + 12 * X.mean(axis=(0, 2, 3)).sum()
        rel = [V(flat[i], n) * T / (V(flat[i], 12) * T12) for i in idx]
        d = np.log(flat[:, 0, :n].mean(axis=1) / flat[:, 1, :n].mean(axis=1))
        print(
            f"  n={n}: sd {np.sqrt(V(flat, n)):.4f} ({np.sqrt(iv(b))}) mad {1.4826 * np.median(abs(d - np.median(d))):.4f} T {T:.2f} VxT {V(flat, n) * T:.4f} rel to 12 {V(flat, n) * T / (V(flat, 12) * T12):.2f} ({iv(rel)})"
        )
# turns beside alone at 12..144
_, A, oa = table(True)
_, B, ob = table(False)
fa, fb = A.reshape(len(A), 2, -1), B.reshape(len(B), 2, -1)
for n in (24, 48, 96, 144):
    q = []

    def VT(f, o, X, n):
        return np.log(f[:, 0, :n].mean(axis=1) / f[:, 1, :n].mean(axis=1)).var(ddof=1) * (
            o.mean() + n * X.mean(axis=(0, 2, 3)).sum()
        )

    for m in (12, n):
        r = []
        for _ in range(2000):
            i = g.integers(len(fa), size=len(fa))
            j = g.integers(len(fb), size=len(fb))
            r.append(VT(fa[i], oa[i], A[i], n) / VT(fb[j], ob[j], B[j], m))
        print("turns", n, "/ alone", m, VT(fa, oa, A, n) / VT(fb, ob, B, m), iv(r))
# spin
sp = [l for l in lines if l["kind"] == "spin"]
for src, name in ((sp, "spin"), ([p for p in pairs if p["turns"]], "pair")):
    if not src:
        continue
    for arm in sorted({c["arm"] for p in src for c in p["chunks"]}):
        eff = []
        eff3 = []
        for p in src:
            seq = [c for c in p["chunks"] if len(c["step_s"]) == 12]
            o = [c for a, c in zip(seq, seq[1:]) if c["arm"] == arm and a["arm"] != arm]
            s = [c for a, c in zip(seq, seq[1:]) if c["arm"] == arm and a["arm"] == arm]
            f = lambda cs, k: np.mean([np.log(np.mean(c["step_s"][:k])) for c in cs])
            eff.append(f(o, 12) - f(s, 12))
            eff3.append(f(o, 3) - f(s, 3))
        print(
            name,
            arm,
            "after other / after own: 12 steps",
            np.exp(np.mean(eff)),
            "+-",
            2 * np.std(eff) / np.sqrt(len(eff)),
            "first 3",
            np.exp(np.mean(eff3)),
            "+-",
            2 * np.std(eff3) / np.sqrt(len(eff3)),
        )
# late
L = [l for l in lines if l["kind"] == "late"]
from collections import defaultdict

D = defaultdict(list)
for l in L:
    s = np.array(l["step_s"])
    t = np.cumsum(s)
    D[l["arm"]].append(
        [
            s[:12].mean(),
            s[:100].mean(),
            s[(t < 10)].mean(),
            s[t > 10].mean() if t[-1] > 10.5 else np.nan,
            s[500:].mean(),
            np.median(s[:12]),
            np.median(s[500:]),
            l["faults"] / len(s),
        ]
    )
    print(
        l["arm"],
        l["block"],
        l["problems"],
        "total",
        t[-1],
        "warm",
        [round(1000 * x) for x in l["warm"]["step_s"]],
        "per100 ms",
        [round(1000 * s[i : i + 100].mean(), 1) for i in range(0, len(s), 100)],
    )
b = np.mean(np.log(D["baseline"]), axis=0)
for a, v in sorted(D.items(), key=lambda kv: np.mean(np.log(np.array(kv[1])[:, 4]))):
    print(
        f"{a:26s} early {np.exp(b - np.mean(np.log(v), axis=0)).round(3)}  each {[list(np.round(1000 * np.array(x[:6]), 1)) for x in v]}"
    )
