import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { NumberField } from '../../../ui/forms/field.tsx'
import { choiceOf, limitOf, MoneyField } from '../../../ui/forms/money-field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { type CapChanges, useChangeCaps, type WholeRun } from '../use-runs.ts'
import { text } from './run-text.ts'

const numbers = ['max_calls', 'max_minutes', 'max_subagents'] as const
type Name = (typeof numbers)[number]
const labels: Readonly<Record<Name, string>> = { max_calls: text.callsCap, max_minutes: text.minutesCap, max_subagents: text.subagentsMost }

const isWhole = (typed: string): boolean => typed === '' || /^[1-9]\d{0,8}$/.test(typed)
const textOf = (value: number | null): string => (value === null ? '' : String(value))

/** The caps of one run. Only what a person changes is sent. An empty field takes over the cap of the agent or key. */
export function RaiseCaps({ run, onClose }: { readonly run: WholeRun; readonly onClose: () => void }) {
  const [before] = useState(() => ({
    cost: run.max_cost_inr,
    numbers: { max_calls: textOf(run.max_calls), max_minutes: textOf(run.max_minutes), max_subagents: textOf(run.max_subagents) },
  }))
  const [cost, setCost] = useState(() => choiceOf(before.cost))
  const [typed, setTyped] = useState(before.numbers)
  const save = useChangeCaps(run, () => {
    toast(text.savedToast)
    onClose()
  })
  const inr = limitOf(cost)
  const changes: CapChanges = {}
  if (inr !== undefined && inr !== before.cost) changes.max_cost_inr = inr
  for (const name of numbers) if (typed[name] !== before.numbers[name]) changes[name] = typed[name] === '' ? null : Number(typed[name])
  const isReady = inr !== undefined && numbers.every(name => isWhole(typed[name])) && Object.keys(changes).length > 0
  return (
    <Dialog
      title={text.changeTitle}
      onClose={onClose}
      onSubmit={() => isReady && !save.isPending && save.mutate(changes)}
      actions={
        <>
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isReady}>
            {text.save}
          </Button>
        </>
      }
    >
      <p className="quiet">{text.changeAbout}</p>
      <MoneyField label={text.costCap} noneLabel={text.noneLabel} value={cost} onChange={setCost} />
      {numbers.map(name => (
        <NumberField
          key={name}
          label={labels[name]}
          placeholder={text.asOwner}
          value={typed[name]}
          error={isWhole(typed[name]) ? null : text.wholeNumber}
          onChange={event => setTyped({ ...typed, [name]: event.target.value.trim() })}
        />
      ))}
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
    </Dialog>
  )
}
