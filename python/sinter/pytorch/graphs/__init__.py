"""What the other folders know of graphs of torch: types, sizes, names, layouts, and the ops that Sinter registers."""
