import type { Order } from "../order.js";

export function orderMail(order: Order): string {
  const lines = order.items.map(
    (item) => `${item.count} × ${item.name}  € ${item.total.toFixed(2)}`,
  );
  return [
    `Thank you, ${order.customer.firstName}.`,
    "",
    ...lines,
    `Shipping  € ${order.shipping.toFixed(2)}`,
    `Total  € ${order.total.toFixed(2)}`,
  ].join("\n");
}
