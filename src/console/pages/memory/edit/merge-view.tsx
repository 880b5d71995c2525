import { useMemo, useState } from 'react'
import type { ApiError } from '../../../api/api-error.ts'
import { type MergeChoice, mergedText, mergeOf } from '../../../ui/compare/merge.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Piece } from './merge-piece.tsx'
import { editText } from './text.ts'
import type { Theirs } from './use-save.ts'

const { merge: words } = editText

interface MergeViewProps {
  /** The text that both began with. */
  readonly base: string
  readonly theirs: Theirs
  readonly yours: string
  readonly isBusy: boolean
  readonly error: ApiError | null
  readonly onSave: (text: string) => void
  /** Goes on in the editor with the merge so far. */
  readonly onEdit: (text: string) => void
  readonly onDiscard: () => void
}

/** Shows what somebody else saved meanwhile, beside yours and what both began with. Each place that both changed needs a decision before the merge is saved. */
export function MergeView({ base, theirs, yours, isBusy, error, onSave, onEdit, onDiscard }: MergeViewProps) {
  const isGone = theirs.etag === null
  const isBytes = theirs.text === null && !isGone
  const pieces = useMemo(() => (isGone ? [] : mergeOf(base, theirs.text ?? '', yours)), [isGone, base, theirs, yours])
  const [choices, setChoices] = useState<ReadonlyMap<number, MergeChoice>>(() => new Map())
  const places = pieces.flatMap(({ kind }, place) => (kind === 'conflict' ? [place] : []))
  const open = places.filter(place => !choices.has(place)).length
  const merged = (): string => (isGone ? yours : mergedText(pieces, choices))
  return (
    <div className="memory-merge">
      <div className="memory-merge-head" role="alert">
        <Icon name="warn" size={20} />
        <div>
          <h2>{words.title}</h2>
          <p>{isGone ? words.gone : isBytes ? words.bytes : words.by(theirs.by ?? 'Somebody')}</p>
          {!isGone && !isBytes && <p className="quiet">{places.length === 0 ? words.clean : words.conflicts(places.length, open)}</p>}
        </div>
        <div className="memory-row">
          <Button onClick={onDiscard}>{words.discard}</Button>
          <Button disabled={isBytes} onClick={() => onEdit(merged())}>
            {words.edit}
          </Button>
          <Button look="primary" isBusy={isBusy} disabled={open > 0 || isBytes} onClick={() => onSave(merged())}>
            {words.save}
          </Button>
        </div>
      </div>
      {error && <InlineError error={error} />}
      <div className="panel memory-pieces">
        <div className="memory-piece-heads" aria-hidden="true">
          <span>{words.base}</span>
          <span>{words.theirs}</span>
          <span>{words.yours}</span>
        </div>
        {(isBytes || isGone ? [] : pieces).map((piece, place) => (
          <Piece
            // biome-ignore lint/suspicious/noArrayIndexKey: the place is the name of a piece.
            key={place}
            piece={piece}
            choice={choices.get(place) ?? null}
            onChoose={choice => setChoices(new Map(choices).set(place, choice))}
          />
        ))}
        {(isBytes || isGone) && <pre className="memory-source">{yours}</pre>}
      </div>
    </div>
  )
}
