/** The prompts of one caller: recall, handoff and budget_report. A prompt is listed when the caller may call the tools that it needs. */
import { mayCall } from '../../platform/security/principal.ts'
import { type PromptEntry, type PromptMessage, type PromptSurface, SurfaceError } from '../surface.ts'
import type { Prompt, PromptDeps } from './prompt.ts'
import { budgetReport } from './prompt-budget.ts'
import { handoff } from './prompt-handoff.ts'
import { recall } from './prompt-recall.ts'

const prompts: readonly Prompt[] = [budgetReport, handoff, recall]

export class GatewayPrompts implements PromptSurface {
  readonly #deps: PromptDeps

  constructor(deps: PromptDeps) {
    this.#deps = deps
  }

  list(): PromptEntry[] {
    const { reader, rows } = this.#deps
    return prompts.filter(prompt => reader.may(prompt.rowOf(rows))).map(({ entry }) => entry)
  }

  async get(name: string, args: Readonly<Record<string, string>>, signal: AbortSignal): Promise<{ description?: string; messages: PromptMessage[] }> {
    const { reader, rows } = this.#deps
    const prompt = prompts.find(({ entry }) => entry.name === name)
    if (!prompt)
      throw new SurfaceError('badParams', `There is no prompt ${name.slice(0, 128)}. There are: ${prompts.map(({ entry }) => entry.name).join(', ')}.`)
    const verdict = mayCall(reader.call.principal, prompt.rowOf(rows).access)
    if (!verdict.ok) throw new SurfaceError('badParams', `forbidden: ${verdict.why}`, { code: 'forbidden', message: verdict.why, status: 403 })
    const messages = await reader.guarded(`prompts/${name}`, () => prompt.write(checked(prompt.entry, args), this.#deps, signal))
    const { description } = prompt.entry
    return { ...(typeof description === 'string' ? { description } : {}), messages }
  }
}

const argumentCharsMax = 4_000

/** Returns the arguments without surrounding blanks. Empty arguments are left out. */
function checked({ name, arguments: known = [] }: PromptEntry, args: Readonly<Record<string, string>>): Record<string, string> {
  const given = Object.entries(args).map(([key, value]) => [key, value.trim()] as const)
  const unknown = given.find(([key]) => !known.some(argument => argument.name === key))
  if (unknown)
    throw new SurfaceError(
      'badParams',
      `The prompt ${name} has no argument ${unknown[0].slice(0, 64)}. It has: ${known.map(argument => argument.name).join(', ')}.`,
    )
  const long = given.find(([, value]) => value.length > argumentCharsMax)
  if (long) throw new SurfaceError('badParams', `The argument ${long[0]} of the prompt ${name} has at most ${argumentCharsMax} characters.`)
  const present = Object.fromEntries(given.filter(([, value]) => value !== ''))
  const missing = known.find(argument => argument.required && present[argument.name] === undefined)
  if (missing) throw new SurfaceError('badParams', `The prompt ${name} needs the argument ${missing.name}: ${missing.description ?? ''}`)
  return present
}
