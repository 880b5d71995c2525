const width = 96
const height = 24
const pad = 2

/** A small line that shows a course. The figure beside it has the value, so the line is decoration. */
export function Spark({ values }: { readonly values: readonly number[] }) {
  const top = Math.max(...values, 0)
  if (values.length < 2 || top === 0) return null
  const step = (width - 2 * pad) / (values.length - 1)
  const points = values.map((value, index) => [pad + index * step, height - pad - (value / top) * (height - 2 * pad)] as const)
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')
  return (
    <svg className="spark" viewBox={`0 0 ${width} ${height}`} height={height} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`${pad},${height} ${line} ${width - pad},${height}`} />
      <polyline points={line} vectorEffect="non-scaling-stroke" />
    </svg>
  )
}
