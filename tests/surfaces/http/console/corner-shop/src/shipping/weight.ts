const GRAMS_PER_KG = 1000;

/** Parcel weight as the carrier wants it: kilograms, two decimals. */
export function parcelWeight(grams: number): string {
  const kg = grams / GRAMS_PER_KG;
  return `${kg.toFixed(2)} kg`;
}
