/** The conversation of the playground, in the memory of the page. */
import type { ApiError } from '../../../api/api-error.ts'
import type { ChatBody, ChatEvent, ChatMessage } from './stream-chat.ts'

/** What a person chose for the next call. */
export interface Settings {
  readonly system: string
  /** As typed. Empty: the default of the model. */
  readonly temperature: string
  readonly maxTokens: string
}

export const noSettings: Settings = { system: '', temperature: '', maxTokens: '' }

/** What is known about a call. */
export interface CallFacts {
  readonly provider: string | null
  readonly requestId: string | null
  readonly budgetLeftInr: number | null
  readonly servedModel: string | null
  readonly firstMs: number | null
  readonly totalMs: number | null
  readonly promptTokens: number | null
  readonly completionTokens: number | null
  readonly costInr: number | null
  readonly valueInr: number | null
}

export interface Answer {
  readonly body: ChatBody
  readonly text: string
  readonly thought: string
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  readonly error: ApiError | null
  readonly facts: CallFacts
}

/** A message of the person with one answer for each column. */
export interface Turn {
  readonly id: number
  readonly prompt: string
  readonly answers: readonly Answer[]
}

const noFacts: CallFacts = {
  provider: null,
  requestId: null,
  budgetLeftInr: null,
  servedModel: null,
  firstMs: null,
  totalMs: null,
  promptTokens: null,
  completionTokens: null,
  costInr: null,
  valueInr: null,
}

export type ConversationAction =
  | { readonly kind: 'ask'; readonly id: number; readonly prompt: string; readonly bodies: readonly ChatBody[] }
  | { readonly kind: 'heard'; readonly id: number; readonly column: number; readonly events: readonly ChatEvent[]; readonly atMs: number }
  | {
      readonly kind: 'ended'
      readonly id: number
      readonly column: number
      readonly state: 'done' | 'stopped' | 'failed'
      readonly error: ApiError | null
      readonly atMs: number
    }
  | { readonly kind: 'clear' }

/** Returns the conversation after an action. `atMs` is the time since the message was sent. */
export function conversation(turns: readonly Turn[], action: ConversationAction): readonly Turn[] {
  if (action.kind === 'clear') return []
  if (action.kind === 'ask') {
    const answers = action.bodies.map((body): Answer => ({ body, text: '', thought: '', state: 'running', error: null, facts: noFacts }))
    return [...turns, { id: action.id, prompt: action.prompt, answers }]
  }
  return turns.map(turn => {
    if (turn.id !== action.id) return turn
    return { ...turn, answers: turn.answers.map((answer, column) => (column === action.column ? changed(answer, action) : answer)) }
  })
}

function changed(answer: Answer, action: Extract<ConversationAction, { kind: 'heard' | 'ended' }>): Answer {
  if (action.kind === 'heard') return action.events.reduce((before, event) => heard(before, event, action.atMs), answer)
  return { ...answer, state: action.state, error: action.error, facts: { ...answer.facts, totalMs: action.atMs } }
}

function heard(answer: Answer, event: ChatEvent, atMs: number): Answer {
  const { facts } = answer
  switch (event.kind) {
    case 'open':
      return { ...answer, facts: { ...facts, provider: event.provider, requestId: event.requestId, budgetLeftInr: event.budgetLeftInr } }
    case 'text':
      return { ...answer, text: answer.text + event.text, facts: { ...facts, firstMs: facts.firstMs ?? atMs } }
    case 'thought':
      return { ...answer, thought: answer.thought + event.text, facts: { ...facts, firstMs: facts.firstMs ?? atMs } }
    case 'usage': {
      const { promptTokens, completionTokens, costInr, valueInr, model } = event
      return { ...answer, facts: { ...facts, promptTokens, completionTokens, costInr, valueInr, servedModel: model } }
    }
  }
}

/** Returns the body of the next call of a column: the system text, what was said in this column before, and the new message. */
export function bodyOf(turns: readonly Turn[], column: number, model: string, prompt: string, settings: Settings): ChatBody {
  const before = turns.flatMap(({ prompt: asked, answers }): ChatMessage[] => {
    const text = (answers[column] ?? answers[0])?.text ?? ''
    return text === ''
      ? []
      : [
          { role: 'user', content: asked },
          { role: 'assistant', content: text },
        ]
  })
  const system: ChatMessage[] = settings.system.trim() === '' ? [] : [{ role: 'system', content: settings.system }]
  const temperature = numberOf(settings.temperature)
  const maxTokens = numberOf(settings.maxTokens)
  return {
    model,
    messages: [...system, ...before, { role: 'user', content: prompt }],
    ...(temperature === null ? {} : { temperature }),
    ...(maxTokens === null ? {} : { max_tokens: maxTokens }),
  }
}

/** Returns the number that was typed. Null for an empty field. */
const numberOf = (text: string): number | null => (text.trim() === '' || !Number.isFinite(Number(text)) ? null : Number(text))

/** Returns what is wrong with the settings, by field. */
export const faultsOf = ({ temperature, maxTokens }: Settings): { readonly temperature: boolean; readonly maxTokens: boolean } => ({
  temperature: temperature.trim() !== '' && !(/^\d(\.\d+)?$/.test(temperature.trim()) && Number(temperature) <= 2),
  maxTokens: maxTokens.trim() !== '' && !/^[1-9]\d{0,6}$/.test(maxTokens.trim()),
})
