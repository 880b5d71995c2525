import { type PointerEvent, type RefObject, useEffect, useState } from 'react'

/** A drag that is under way: the places as they were when it began, and how far the pointer went. */
interface Drag {
  readonly from: number
  readonly startY: number
  readonly byY: number
  readonly rows: readonly { readonly top: number; readonly height: number }[]
}

const middle = ({ top, height }: Drag['rows'][number]): number => top + height / 2

/** Returns the place at which the dragged row would be dropped. */
function targetOf({ from, byY, rows }: Drag): number {
  const row = rows[from]
  if (row === undefined) return from
  const at = middle(row) + byY
  return rows.filter((other, place) => (place < from ? middle(other) < at : place > from && middle(other) <= at)).length
}

/** Returns how far a row is drawn from its place while another one is dragged over it. */
function shiftOf(drag: Drag, place: number): number {
  if (place === drag.from) return drag.byY
  const [to, height] = [targetOf(drag), pitchOf(drag)]
  if (place > drag.from && place <= to) return -height
  return place < drag.from && place >= to ? height : 0
}

/** The height of the dragged row with the gap below it. */
function pitchOf({ from, rows }: Drag): number {
  const [row, next, before] = [rows[from], rows[from + 1], rows[from - 1]]
  if (row === undefined) return 0
  if (next !== undefined) return next.top - row.top
  return before === undefined ? row.height : row.top - before.top + row.height - before.height
}

/**
 * Lets a person drag the rows of a list by a handle, with a mouse, a pen or a finger. The list changes when the pointer is released, and not before, so that a
 * handle keeps the pointer. Escape gives it up. Decision 0888 says why.
 */
export function useDrag(list: RefObject<HTMLElement | null>, onMove: (from: number, to: number) => void) {
  const [drag, setDrag] = useState<Drag | null>(null)
  const isDragging = drag !== null
  useEffect(() => {
    if (!isDragging) return
    const giveUp = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return
      event.stopPropagation()
      setDrag(null)
    }
    window.addEventListener('keydown', giveUp, true)
    return () => window.removeEventListener('keydown', giveUp, true)
  }, [isDragging])
  const handle = (from: number) => ({
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0 || list.current === null) return
      event.currentTarget.setPointerCapture(event.pointerId)
      const rows = [...list.current.children].map(row => row.getBoundingClientRect()).map(({ top, height }) => ({ top, height }))
      setDrag({ from, startY: event.clientY, byY: 0, rows })
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => setDrag(before => before && { ...before, byY: event.clientY - before.startY }),
    onPointerUp: (event: PointerEvent<HTMLElement>) => {
      if (drag === null) return
      const to = targetOf({ ...drag, byY: event.clientY - drag.startY })
      setDrag(null)
      if (to !== drag.from) onMove(drag.from, to)
    },
    onPointerCancel: () => setDrag(null),
  })
  return {
    handle,
    isDragged: (place: number): boolean => drag?.from === place,
    isDragging,
    style: (place: number) => (drag === null ? undefined : { transform: `translateY(${shiftOf(drag, place)}px)` }),
  }
}
