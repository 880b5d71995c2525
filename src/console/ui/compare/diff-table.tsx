import { useEffect, useMemo, useState } from 'react'
import { count } from '../format/numbers.ts'
import { Icon } from '../icon.tsx'
import './compare.css'
import { type DiffBlock, type DiffPart, type DiffRow, diffCounts, diffRows, foldedRows, unifiedLines } from './diff-rows.ts'

/** From this width of the window, the versions are side by side. */
const wideQuery = '(width >= 900px)'

function useWide(): boolean {
  const [isWide, setWide] = useState(() => matchMedia(wideQuery).matches)
  useEffect(() => {
    const media = matchMedia(wideQuery)
    const follow = (): void => setWide(media.matches)
    follow()
    media.addEventListener('change', follow)
    return () => media.removeEventListener('change', follow)
  }, [])
  return isWide
}

interface DiffTableProps {
  readonly before: string
  readonly after: string
  /** What the sides are, for their heads. */
  readonly beforeName: string
  readonly afterName: string
}

/** Two versions of a text as a table: side by side where there is room, and in one column elsewhere. Equal parts far from a change are folded. */
export function DiffTable({ before, after, beforeName, afterName }: DiffTableProps) {
  const isWide = useWide()
  const rows = useMemo(() => diffRows(before, after), [before, after])
  const blocks = useMemo(() => foldedRows(rows), [rows])
  const { added, removed } = diffCounts(rows)
  if (added + removed === 0) return <p className="diff-equal quiet">The two versions are the same.</p>
  const summary = `${beforeName} and ${afterName}: ${count(removed)} ${removed === 1 ? 'line' : 'lines'} removed, ${count(added)} added.`
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls must take the focus, so that keys can scroll it.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
    <div className="diff-frame" tabIndex={0} role="group" aria-label="Comparison">
      <table className={isWide ? 'diff diff-wide' : 'diff'}>
        <caption className="visually-hidden">{summary}</caption>
        {isWide && (
          <colgroup>
            <col className="diff-col-number" />
            <col />
            <col className="diff-col-number" />
            <col />
          </colgroup>
        )}
        <thead>
          {isWide ? (
            <tr>
              <th scope="col" colSpan={2}>
                {beforeName}
              </th>
              <th scope="col" colSpan={2}>
                {afterName} <Counts added={added} removed={removed} />
              </th>
            </tr>
          ) : (
            <tr>
              <th scope="col" colSpan={3}>
                {beforeName} → {afterName} <Counts added={added} removed={removed} />
              </th>
            </tr>
          )}
        </thead>
        {blocks.map(block => (
          <Block key={`${block.rows[0]?.before?.line ?? ''} ${block.rows[0]?.after?.line ?? ''}`} block={block} isWide={isWide} />
        ))}
      </table>
    </div>
  )
}

function Counts({ added, removed }: { readonly added: number; readonly removed: number }) {
  return (
    <span className="diff-counts" aria-hidden="true">
      <span className="diff-plus">+{count(added)}</span> <span className="diff-minus">−{count(removed)}</span>
    </span>
  )
}

function Block({ block: { isFolded, rows }, isWide }: { readonly block: DiffBlock; readonly isWide: boolean }) {
  const [isOpen, setOpen] = useState(false)
  if (isFolded && !isOpen)
    return (
      <tbody>
        <tr className="diff-fold">
          <td colSpan={isWide ? 4 : 3}>
            <button type="button" onClick={() => setOpen(true)}>
              <Icon name="upDown" size={14} />
              {count(rows.length)} equal lines
            </button>
          </td>
        </tr>
      </tbody>
    )
  return <tbody>{isWide ? rows.map(row => <WideRow key={`${row.before?.line ?? ''} ${row.after?.line ?? ''}`} row={row} />) : <Unified rows={rows} />}</tbody>
}

function WideRow({ row: { kind, before, after } }: { readonly row: DiffRow }) {
  const isSame = kind === 'same'
  return (
    <tr>
      <td className={isSame ? 'diff-number' : before ? 'diff-number diff-removed' : 'diff-number diff-none'}>{before?.line}</td>
      <td className={isSame ? 'diff-text' : before ? 'diff-text diff-removed' : 'diff-text diff-none'}>
        {before && <LineText sign={isSame ? 'same' : 'removed'} parts={before.parts} />}
      </td>
      <td className={isSame ? 'diff-number' : after ? 'diff-number diff-added' : 'diff-number diff-none'}>{after?.line}</td>
      <td className={isSame ? 'diff-text' : after ? 'diff-text diff-added' : 'diff-text diff-none'}>
        {after && <LineText sign={isSame ? 'same' : 'added'} parts={after.parts} />}
      </td>
    </tr>
  )
}

function Unified({ rows }: { readonly rows: readonly DiffRow[] }) {
  return unifiedLines(rows).map(({ kind, before, after, parts }) => {
    const tone = kind === 'same' ? '' : ` diff-${kind}`
    return (
      <tr key={`${before ?? ''} ${after ?? ''}`}>
        <td className={`diff-number${tone}`}>{before}</td>
        <td className={`diff-number${tone}`}>{after}</td>
        <td className={`diff-text${tone}`}>
          <LineText sign={kind} parts={parts} />
        </td>
      </tr>
    )
  })
}

const signs = { same: '', removed: '−', added: '+' } as const

/** The text of a line. A carriage return is shown, because a change of line ends is invisible otherwise. */
function LineText({ sign, parts }: { readonly sign: keyof typeof signs; readonly parts: readonly DiffPart[] }) {
  return (
    <>
      <span className="diff-sign" aria-hidden="true">
        {signs[sign]}
      </span>
      {sign !== 'same' && <span className="visually-hidden">{sign}: </span>}
      {parts.map(({ text, isChanged }, place) => {
        const shown = text.replaceAll('\r', '␍')
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a line have no other name.
        return isChanged ? <mark key={place}>{shown}</mark> : <span key={place}>{shown}</span>
      })}
    </>
  )
}
