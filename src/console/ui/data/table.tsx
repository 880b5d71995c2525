import type { KeyboardEvent, ReactNode } from 'react'

/** A column of a table. */
export interface Column<T> {
  readonly key: string
  readonly head: string
  readonly cell: (row: T) => ReactNode
  readonly align?: 'end'
  /** False: left out where the screen is narrow, so that a card has about three facts. */
  readonly isOnCards?: boolean
  /** True for the name of the row. */
  readonly isName?: boolean
  readonly width?: string
}

/** What lets a person select rows: a checkbox in each row, and `x` on the row that has the focus. */
export interface Marks<T> {
  readonly isMarked: (row: T) => boolean
  /** False: the row has no checkbox. */
  readonly mayMark: (row: T) => boolean
  readonly onMark: (row: T, isMarked: boolean) => void
  /** The name of the checkbox of a row. */
  readonly label: (row: T) => string
  /** The name of the checkbox that selects all rows that are read. */
  readonly allLabel: string
  readonly onMarkAll: (isMarked: boolean) => void
}

export interface TableProps<T> {
  /** What the table lists, for a screen reader. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly rowKey: (row: T) => string | number
  /** Opens the object of a row. With it a row takes clicks, Enter, j and k. */
  readonly onOpen?: (row: T) => void
  readonly isOpen?: (row: T) => boolean
  readonly marks?: Marks<T> | undefined
  /** True: the table stays a table where the screen is narrow, with the columns that cards have. For rows of two or three short facts. */
  readonly isCompact?: boolean
}

/** The class of a table. */
export const tableClass = (isCompact = false): string => (isCompact ? 'table table-compact' : 'table')

const isControl = (target: EventTarget): boolean => target instanceof Element && target.closest('button, a, input, [popover]') !== null

function moveFocus(row: HTMLElement, step: 'nextElementSibling' | 'previousElementSibling'): void {
  const next = row[step]
  if (next instanceof HTMLElement && next.tabIndex >= 0) next.focus()
}

/** The attributes that let a row be opened by mouse and by keyboard. */
export function openable<T>(row: T, { onOpen, isOpen, marks }: Pick<TableProps<T>, 'onOpen' | 'isOpen' | 'marks'>) {
  if (!onOpen) return {}
  return {
    tabIndex: 0,
    'data-open': isOpen?.(row) || marks?.isMarked(row) || undefined,
    onClick: (event: { target: EventTarget }) => {
      if (!isControl(event.target) && getSelection()?.isCollapsed !== false) onOpen(row)
    },
    onKeyDown: (event: KeyboardEvent<HTMLTableRowElement>) => {
      if (event.target !== event.currentTarget) return
      if (event.key === 'Enter') onOpen(row)
      else if (event.key === 'x' && marks?.mayMark(row)) marks.onMark(row, !marks.isMarked(row))
      else if (event.key === 'j' || event.key === 'ArrowDown') moveFocus(event.currentTarget, 'nextElementSibling')
      else if (event.key === 'k' || event.key === 'ArrowUp') moveFocus(event.currentTarget, 'previousElementSibling')
      else return
      event.preventDefault()
    },
  }
}

const classOf = ({ align, isOnCards = true, isName = false }: Pick<Column<never>, 'align' | 'isOnCards' | 'isName'>): string =>
  [align === 'end' ? 'align-end' : '', isOnCards ? '' : 'not-on-cards', isName ? 'cell-name' : ''].filter(name => name !== '').join(' ')

/** The head of a table. */
export function TableHead<T>({ columns, rows, marks }: Pick<TableProps<T>, 'columns' | 'rows' | 'marks'>) {
  return (
    <thead>
      <tr>
        {marks && (
          <td className="cell-mark">
            <MarkAll rows={rows} marks={marks} />
          </td>
        )}
        {columns.map(column => (
          <th key={column.key} scope="col" className={classOf(column)} style={column.width === undefined ? undefined : { inlineSize: column.width }}>
            {column.head === '' ? <span className="visually-hidden">Acts</span> : column.head}
          </th>
        ))}
      </tr>
    </thead>
  )
}

/** The box is half checked when a part of the rows is selected. */
function MarkAll<T>({ rows, marks }: { readonly rows: readonly T[]; readonly marks: Marks<T> }) {
  const possible = rows.filter(marks.mayMark)
  const marked = possible.filter(marks.isMarked).length
  return (
    <input
      type="checkbox"
      className="mark-box"
      aria-label={marks.allLabel}
      disabled={possible.length === 0}
      checked={marked > 0 && marked === possible.length}
      ref={box => {
        if (box) box.indeterminate = marked > 0 && marked < possible.length
      }}
      onChange={event => marks.onMarkAll(event.target.checked)}
    />
  )
}

interface CellsProps<T> {
  readonly columns: readonly Column<T>[]
  readonly row: T
  readonly marks?: Marks<T> | undefined
}

/** The cells of a row. */
export function Cells<T>({ columns, row, marks }: CellsProps<T>) {
  const cells = columns.map(column =>
    column.isName ? (
      <th key={column.key} scope="row" className={classOf(column)}>
        {column.cell(row)}
      </th>
    ) : (
      <td key={column.key} className={classOf(column)} data-head={column.head}>
        {column.cell(row)}
      </td>
    ),
  )
  if (!marks) return cells
  return (
    <>
      <td className="cell-mark">
        {marks.mayMark(row) && (
          <input
            type="checkbox"
            className="mark-box"
            aria-label={marks.label(row)}
            checked={marks.isMarked(row)}
            onChange={event => marks.onMark(row, event.target.checked)}
          />
        )}
      </td>
      {cells}
    </>
  )
}

/** A table of at most a page of rows. It becomes a list of cards where the screen is narrow. Use VirtualTable for longer lists. */
export function Table<T>({ label, columns, rows, rowKey, isCompact, ...opening }: TableProps<T>) {
  return (
    <table className={tableClass(isCompact)} aria-label={label}>
      <TableHead columns={columns} rows={rows} marks={opening.marks} />
      <tbody>
        {rows.map(row => (
          <tr key={rowKey(row)} {...openable(row, opening)}>
            <Cells columns={columns} row={row} marks={opening.marks} />
          </tr>
        ))}
      </tbody>
    </table>
  )
}
