/** Checks whether the tool calls of a reply can be read. Only whole replies in OpenAI's format are checked, because only there arguments are text. */
import { JsonTexts } from '../../wire/json/json-texts.ts'

/** The most calls of one reply that are checked. */
const callsMax = 64

/** Returns true when the arguments of every call are a JSON object or empty. Null when the reply calls no tool. */
export function toolCallsAreSound(reply: Readonly<Record<string, unknown>>): boolean | null {
  const choices = Array.isArray(reply['choices']) ? reply['choices'] : []
  const calls = choices.flatMap((choice: unknown) => listOf(objectOf(objectOf(choice)['message'])['tool_calls'])).slice(0, callsMax)
  const texts = new JsonTexts()
  return calls.length === 0 ? null : calls.every(call => isSound(objectOf(objectOf(call)['function']), texts))
}

function isSound({ name, arguments: text }: Readonly<Record<string, unknown>>, texts: JsonTexts): boolean {
  if (typeof name !== 'string' || name === '') return false
  if (text === undefined || text === null || text === '') return true
  return typeof text === 'string' && texts.object(text) !== null
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
