const RATES: Record<string, number> = { DE: 0.19, FR: 0.2 };

export function vatRate(country: string): number {
  return RATES[country] ?? 0;
}
