import { useId, useState } from 'react'
import type { MergeChoice, MergePiece } from '../../../ui/compare/merge.ts'
import { Icon } from '../../../ui/icon.tsx'
import { editText } from './text.ts'

const { merge: words } = editText
/** Unchanged lines that are shown before and after a change. */
const contextLines = 2

interface PieceProps {
  readonly piece: MergePiece
  readonly choice: MergeChoice | null
  readonly onChoose: (choice: MergeChoice) => void
}

/** A piece of a merge in three panes. Unchanged pieces are folded. */
export function Piece({ piece, choice, onChoose }: PieceProps) {
  const name = useId()
  if (piece.kind === 'same') return <Same lines={piece.base} />
  const isConflict = piece.kind === 'conflict'
  const taken = (side: 'theirs' | 'yours'): boolean => (isConflict ? choice === side || choice === 'both' : piece.kind === side || piece.kind === 'both')
  return (
    <section className={`memory-piece memory-piece-${piece.kind}`} aria-label={`${words.only[piece.kind]}. ${words.from(piece.line)}`}>
      <div className="memory-piece-title">
        <span>
          <Icon name={isConflict && choice === null ? 'warn' : 'check'} size={14} />
          {words.only[piece.kind]}
        </span>
        {isConflict && (
          <fieldset className="segmented">
            <legend className="visually-hidden">{words.take}</legend>
            {(['theirs', 'yours', 'both'] as const).map(value => (
              <label key={value}>
                <input type="radio" name={name} className="visually-hidden" checked={choice === value} onChange={() => onChoose(value)} />
                <span>{words[value]}</span>
              </label>
            ))}
          </fieldset>
        )}
      </div>
      <div className="memory-panes">
        <Pane title={words.base} lines={piece.base} isTaken={false} />
        <Pane title={words.theirs} lines={piece.theirs} isTaken={taken('theirs')} />
        <Pane title={words.yours} lines={piece.yours} isTaken={taken('yours')} />
      </div>
    </section>
  )
}

interface PaneProps {
  readonly title: string
  readonly lines: readonly string[]
  /** True for what the merge keeps. */
  readonly isTaken: boolean
}

function Pane({ title, lines, isTaken }: PaneProps) {
  return (
    <div className={isTaken ? 'memory-pane memory-pane-taken' : 'memory-pane'}>
      <p className="memory-pane-title">{title}</p>
      {lines.length === 0 ? <p className="quiet">{words.none}</p> : <pre>{lines.join('\n')}</pre>}
    </div>
  )
}

function Same({ lines }: { readonly lines: readonly string[] }) {
  const [isOpen, setOpen] = useState(lines.length <= 2 * contextLines + 1)
  if (isOpen) return <pre className="memory-same">{lines.join('\n')}</pre>
  return (
    <>
      <pre className="memory-same">{lines.slice(0, contextLines).join('\n')}</pre>
      <button type="button" className="memory-same-fold" onClick={() => setOpen(true)}>
        <Icon name="upDown" size={14} />
        {words.equal(lines.length - 2 * contextLines)}
      </button>
      <pre className="memory-same">{lines.slice(-contextLines).join('\n')}</pre>
    </>
  )
}
