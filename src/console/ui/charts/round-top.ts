/** Tops of the axis whose quarters are round, too. */
const tops = [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10]

/** Returns the smallest round number that is at least `value`. */
export function roundTop(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return (tops.find(top => top * power >= value) ?? 10) * power
}
