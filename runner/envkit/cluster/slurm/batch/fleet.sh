# Submitted for each of these nodes, with --nodelist: @{nodes}
