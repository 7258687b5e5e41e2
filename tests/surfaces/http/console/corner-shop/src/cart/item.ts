export type CartItem = {
  name: string;
  price: number;
  count: number;
};
