import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Button } from '../forms/button.tsx'
import { Cells, openable, Table, TableHead, type TableProps, tableClass } from './table.tsx'

/** From this number of rows only those on the screen are drawn. */
const virtualFrom = 40
const rowHeight = 53
const overscan = 12

interface VirtualTableProps<T> extends TableProps<T> {
  /** Reads the next page. Null when there is none. */
  readonly onMore: (() => void) | null
  readonly isLoadingMore: boolean
}

/** A table of any length. The gateway sends it in pages, and the next page is read when the end comes into view. */
export function VirtualTable<T>({ onMore, isLoadingMore, ...table }: VirtualTableProps<T>) {
  const end = useRef<HTMLDivElement>(null)
  const rowCount = table.rows.length
  // The effect runs again after each page, because an end that stays in view reports nothing.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the number of rows changes with each page.
  useEffect(() => {
    if (!end.current || !onMore || isLoadingMore) return
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && onMore(), { rootMargin: '600px' })
    watch.observe(end.current)
    return () => watch.disconnect()
  }, [onMore, isLoadingMore, rowCount])
  return (
    <>
      {rowCount < virtualFrom ? <Table {...table} /> : <Windowed {...table} />}
      <div ref={end} className="table-end">
        {onMore && (
          <Button size="sm" look="ghost" isBusy={isLoadingMore} onClick={onMore}>
            Load more
          </Button>
        )}
      </div>
    </>
  )
}

function Windowed<T>({ label, columns, rows, rowKey, isCompact, ...opening }: TableProps<T>) {
  const table = useRef<HTMLTableElement>(null)
  const [offset, setOffset] = useState(0)
  useLayoutEffect(() => setOffset((table.current?.getBoundingClientRect().top ?? 0) + scrollY), [])
  const virtual = useWindowVirtualizer({ count: rows.length, estimateSize: () => rowHeight, overscan, scrollMargin: offset })
  const items = virtual.getVirtualItems()
  const before = (items[0]?.start ?? offset) - offset
  const after = virtual.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset)
  return (
    <table ref={table} className={tableClass(isCompact)} aria-label={label} aria-rowcount={rows.length + 1}>
      <TableHead columns={columns} rows={rows} marks={opening.marks} />
      <tbody>
        {before > 0 && <Gap height={before} />}
        {items.map(item => {
          const row = rows[item.index] as T
          return (
            <tr key={rowKey(row)} ref={virtual.measureElement} data-index={item.index} aria-rowindex={item.index + 2} {...openable(row, opening)}>
              <Cells columns={columns} row={row} marks={opening.marks} />
            </tr>
          )
        })}
        {after > 0 && <Gap height={after} />}
      </tbody>
    </table>
  )
}

/** The room of the rows that are not drawn. */
function Gap({ height }: { readonly height: number }) {
  return (
    <tr className="table-gap">
      <td style={{ blockSize: height }} />
    </tr>
  )
}
