/** The tools and the prompt of the conformance suite that ask their caller back. */
import { createHmac } from 'node:crypto'
import { type Asked, type Questions, SurfaceError, type ToolAnswer } from '../../src/mcp/surface.ts'

type Question = Questions['questions'][string]
type Said = ToolAnswer | Questions

const said = (text: string): ToolAnswer => ({ content: [{ type: 'text', text }] })
const form = (message: string, field: string, type = 'string'): Question => ({
  kind: 'elicitation',
  params: { message, requestedSchema: { type: 'object', properties: { [field]: { type } }, required: [field] } },
})
const prompt = (text: string, maxTokens: number): Question => ({
  kind: 'sampling',
  params: { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens },
})
const roots: Question = { kind: 'roots', params: {} }

/** A state that says of itself whether it is ours. */
const sealed = (text: string): string => `${text}.${createHmac('sha256', 'of the test').update(text).digest('hex')}`
function opened(state: string | undefined): string {
  const text = state?.split('.')[0] ?? ''
  if (state !== sealed(text)) throw new SurfaceError('badParams', 'The state is not the one that was given.')
  return text
}

const has = ({ answers }: Asked, ...names: string[]): boolean => names.every(name => answers?.[name] !== undefined)
const json = (value: unknown): string => JSON.stringify(value)

/** Asks until every answer is there, then says them. */
const until =
  (questions: Questions['questions'], state?: string) =>
  (asked: Asked): Said => {
    if (asked.answers === undefined || !has(asked, ...Object.keys(questions))) return { questions, ...(state === undefined ? {} : { state: sealed(state) }) }
    if (state !== undefined && opened(asked.state) !== state) throw new SurfaceError('badParams', 'The state is of another call.')
    return said(`state-ok ${json(asked.answers)}`)
  }

const name = form('What is your name?', 'name')

function rounds(asked: Asked): Said {
  if (asked.answers === undefined) return { questions: { step1: form('Step 1: What is your name?', 'name') }, state: sealed('one') }
  if (opened(asked.state) === 'one') return { questions: { step2: form('Step 2: What is your favorite color?', 'color') }, state: sealed('two') }
  return said(`All said: ${json(asked.answers)}`)
}

function whatItCan({ can, answers }: Asked): Said {
  if (answers !== undefined) return said(json(answers))
  const questions = Object.entries({ name, greeting: prompt('Generate a greeting', 50), roots }).filter(([, { kind }]) => can(kind))
  return { questions: Object.fromEntries(questions) }
}

/** The tools by name. */
export const questionTools: Readonly<Record<string, (asked: Asked) => Said>> = {
  test_input_required_result_elicitation: until({ user_name: name }),
  test_input_required_result_sampling: until({ capital_question: prompt('What is the capital of France?', 100) }),
  test_input_required_result_list_roots: until({ client_roots: roots }),
  test_input_required_result_request_state: until({ confirm: form('Please confirm', 'ok', 'boolean') }, 'confirm'),
  test_input_required_result_tampered_state: until({ confirm: form('Please confirm', 'ok', 'boolean') }, 'tampered'),
  test_input_required_result_multiple_inputs: until({ user_name: name, greeting: prompt('Generate a greeting', 50), client_roots: roots }, 'multiple'),
  test_input_required_result_multi_round: rounds,
  test_input_required_result_capabilities: whatItCan,
  test_missing_capability: until({ capital_question: prompt('What is the capital of France?', 100) }),
  test_streaming_elicitation: until({ user_name: name }),
}

/** What the prompt asks first. */
export const promptQuestion: Questions['questions'] = { user_context: form('What context should the prompt use?', 'context') }
