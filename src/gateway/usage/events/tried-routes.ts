/**
 * The attempts of a call that failed before the call ended, as a short text. The text is part of the usage event. It contains names of the catalog, statuses and
 * classes of failures, and never a message of a provider. Decision 0591 gives the reasons.
 *
 * The text is JSON: the number of dials, then a list `[provider, model, residency, byok, reason, ms]` for each failed attempt.
 */
import type { UsageEvent } from './record.ts'

/** An attempt that failed. */
export interface TriedRoute {
  readonly provider: string
  readonly model: string
  readonly residency: UsageEvent['residency']
  readonly byok: boolean
  /** The status of the provider, or the class of the failure. */
  readonly reason: string
  /** Milliseconds from the dial to the failure. */
  readonly ms: number
}

/** The failed attempts of a call, and how many times the call dialed. */
export interface TriedRoutes {
  readonly dials: number
  readonly failed: readonly TriedRoute[]
}

/** Maximum length of the text. A chain of ten routes with names of usual length has a quarter of it. */
export const triedMaxChars = 2_000
/** The first and the last characters of the text, and the largest number of dials. */
const frameChars = 10
const nameMaxChars = 300

/** Collects the failed attempts of one call. An attempt that has no place in the text is left out, and later ones too. */
export class TriedText {
  #steps = ''
  #isFull = false

  /** Adds an attempt. */
  add({ provider, model, residency, byok, reason, ms }: TriedRoute): void {
    const step = `,${JSON.stringify([provider.slice(0, nameMaxChars), model.slice(0, nameMaxChars), residency, byok, reason.slice(0, nameMaxChars), Math.round(ms)])}`
    this.#isFull ||= this.#steps.length + step.length > triedMaxChars - frameChars
    if (!this.#isFull) this.#steps += step
  }

  /** Returns the text for a call that has dialed `dials` times. */
  textOf(dials: number): string {
    return `[${dials}${this.#steps}]`
  }
}

/** Returns the attempts of a text. Null for an event without failed attempts, and for a text that this version cannot read. */
export function readTried(text: string | null): TriedRoutes | null {
  if (text === null) return null
  const [dials, ...steps] = parsed(text)
  if (typeof dials !== 'number') return null
  return { dials, failed: steps.flatMap(step => stepOf(step) ?? []) }
}

function parsed(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : []
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

function stepOf(step: unknown): TriedRoute | null {
  if (!Array.isArray(step)) return null
  const [provider, model, residency, byok, reason, ms] = step as unknown[]
  if (typeof provider !== 'string' || typeof model !== 'string' || typeof reason !== 'string' || typeof ms !== 'number') return null
  return { provider, model, residency: residency as TriedRoute['residency'], byok: byok === true, reason, ms }
}
