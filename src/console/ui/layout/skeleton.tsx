/** Grey lines in the shape of what loads. They appear after a moment, so that a fast page does not flicker. A screen reader reads that this part is busy. */
export function Skeleton({ lines = 3, height }: { readonly lines?: number; readonly height?: number }) {
  return (
    <div className="skeleton" aria-busy="true">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike.
        <div key={line} aria-hidden="true" style={height === undefined ? undefined : { blockSize: height }} />
      ))}
      <span className="visually-hidden">Loading</span>
    </div>
  )
}
