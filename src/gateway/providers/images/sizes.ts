import type { ImageSize } from '../../wire/images.ts'

const square: ImageSize = { width: 1, height: 1 }
const sizeOfText = (text: string): ImageSize => {
  const [width = 1, height = 1] = text.split(/[:*x]/).map(Number)
  return { width, height }
}
const ratioOf = ({ width, height }: ImageSize): number => width / height

/** Returns the shape, such as `16:9` or `1664*928`, with the aspect ratio nearest to the wanted one. `isExact` says whether the two ratios are equal. */
export function nearestShape(wanted: ImageSize | null, shapes: readonly string[]): { readonly shape: string; readonly isExact: boolean } {
  const ratio = ratioOf(wanted ?? square)
  const distance = (shape: string): number => Math.abs(Math.log(ratioOf(sizeOfText(shape)) / ratio))
  const shape = shapes.reduce((best, one) => (distance(one) < distance(best) ? one : best), shapes[0] ?? '1:1')
  return { shape, isExact: distance(shape) < 1e-9 }
}

/** Returns the nearest size whose edges are multiples of `step` between `min` and `max`, and whether it equals the wanted size. */
export function steppedSize(wanted: ImageSize | null, { step, min, max }: { readonly step: number; readonly min: number; readonly max: number }) {
  const fitted = (edge: number): number => Math.min(max, Math.max(min, Math.round(edge / step) * step))
  const { width, height } = wanted ?? { width: 1024, height: 1024 }
  const size: ImageSize = { width: fitted(width), height: fitted(height) }
  return { size, isExact: size.width === width && size.height === height }
}
