old build a
