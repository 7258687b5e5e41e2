"""What checking a tool of any format shares: findings and their table of codes, and looks at files, definitions,
descriptions and behaviour. Each format's own check lies in the folder of the format, as `checking`.
"""
