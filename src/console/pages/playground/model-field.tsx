import type { ReplyOf } from '../../api/call.ts'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { shortMoney } from '../../ui/format/numbers.ts'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { text } from './text.ts'

export type Model = ReplyOf<'listModels'>['data'][number]

const foundMax = 40

/** Returns whether a model has a route that works now without a key of the organisation. */
const isAvailable = ({ routes }: Model): boolean => routes.some(({ available, configured, byok_only: isOwnOnly }) => available && configured && !isOwnOnly)

/** Returns the models that answer messages, those that work now first. */
export function chatModels(models: readonly Model[]): readonly Model[] {
  const chat = models.filter(({ kind }) => kind === 'chat' || kind === 'virtual')
  return [...chat.filter(isAvailable), ...chat.filter(model => !isAvailable(model))]
}

/** Returns the model with which a person starts: the gateway's own choice, or the first that works. */
export function firstModel(models: readonly Model[]): string | undefined {
  const able = chatModels(models).filter(isAvailable)
  return (able.find(({ id }) => id === 'auto') ?? able[0])?.id
}

/** Writes what a person needs to know to choose: the price for a million tokens, and where it runs. */
function hintOf({ pricing, kind, residency, ...model }: Model): string {
  if (kind === 'virtual') return 'chooses a model'
  const price =
    pricing.inputINRPerMtok === 0 && pricing.outputINRPerMtok === 0
      ? 'free'
      : `${shortMoney(pricing.inputINRPerMtok)} / ${shortMoney(pricing.outputINRPerMtok)} a million`
  return `${isAvailable({ pricing, kind, residency, ...model }) ? price : 'no key here'}${residency === 'india' ? ' · India' : ''}`
}

/** The list is read once and searched here, because the gateway has one reply for all models. */
async function findModels(typed: string): Promise<ComboOption[]> {
  const { data } = await queryClient.ensureQueryData(apiQuery('listModels'))
  const words = typed.trim().toLowerCase()
  return chatModels(data)
    .filter(({ id }) => id.toLowerCase().includes(words))
    .slice(0, foundMax)
    .map(model => ({ value: model.id, label: model.id, hint: hintOf(model) }))
}

interface ModelFieldProps {
  readonly label: string
  readonly model: string | undefined
  readonly onChange: (model: string | undefined) => void
}

/** The choice of a model, with its price in rupees for a million tokens in and out. */
export function ModelField({ label, model, onChange }: ModelFieldProps) {
  return (
    <Combobox
      label={label}
      placeholder={text.modelPlaceholder}
      name="chat-models"
      value={model === undefined ? [] : [{ value: model, label: model }]}
      onChange={chosen => onChange(chosen[0]?.value)}
      search={findModels}
    />
  )
}
