export function receipt(order: Order): string {
  const { net, vat, gross } = cartTotal(order.items, order.country);
  return [
    `Net    ${net.toFixed(2)}`,
    `VAT    ${vat.toFixed(2)}`,
    `Total  ${gross.toFixed(2)}`,
  ].join("\n");
}
