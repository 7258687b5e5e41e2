import type { CartItem } from "./item.js";

export type Totals = {
  net: number;
  vat: number;
  gross: number;
};

export function cartTotal(items: CartItem[], country: string): Totals {
  let net = 0;
  for (const item of items) {
    net += item.price * item.count;
  }
  const vat = net * vatRate(country);
  return { net, vat, gross: net + vat };
}
