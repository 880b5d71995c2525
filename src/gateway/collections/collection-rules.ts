/** The rules for the content of a collection. Every writer uses them. */

import { fail } from '../../platform/errors.ts'
import { cleanName } from '../../platform/values/clean-name.ts'
import type { StoredStep } from '../routing/chains.ts'
import { isCustomReference } from '../routing/own-models.ts'
import type { CollectionContent } from './collection-queries.ts'

const readmeMaxBytes = 64 * 1024
/** All control characters except tab and line ends. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the point.
const controlCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/

/** Characters that change the direction of the surrounding text or break lines. Joiners are allowed, because scripts and emoji need them. */
const turningCharacters = /[\u202a-\u202e\u2066-\u2069\u2028\u2029]/

/** Checks a name from a client and returns it. Throws `bad_name`. */
export function nameOf(given: unknown): string {
  if (typeof given !== 'string') throw fail('bad_name', { message: '"name" must be a text of 1 to 100 characters.' })
  const name = cleanName(given.toWellFormed())
  if (turningCharacters.test(name) || !/[^\s\p{Cf}]/u.test(name))
    throw fail('bad_name', { message: '"name" must show something, and must not hold characters that turn or break lines: strangers read it.' })
  return name
}

/**
 * Checks a readme from a client and returns it. Returns an empty text for null. The gateway stores the text unchanged and never interprets it. Throws
 * `bad_readme`.
 */
export function readmeOf(given: unknown): string {
  if (given === null) return ''
  if (typeof given !== 'string') throw fail('bad_readme', { message: '"readme_md" must be Markdown as a text.' })
  const readme = given.toWellFormed()
  const bytes = Buffer.byteLength(readme)
  if (bytes > readmeMaxBytes) throw fail('bad_readme', { message: `"readme_md" has ${bytes} bytes; at most ${readmeMaxBytes} are kept.` })
  if (controlCharacters.test(readme))
    throw fail('bad_readme', { message: '"readme_md" must not hold control characters other than tab and the ends of lines.' })
  return readme
}

/** Checks the id of a model as far as that is possible without the catalog. Throws `bad_model`. */
export function modelIdOf(given: unknown): string {
  if (typeof given !== 'string') throw fail('bad_model', { message: '"model" must be the id of a model of the catalog. GET /v1/models lists the ids.' })
  return given
}

/** Throws `bad_steps` when a public collection has a step with a server that only its own organisation can use. */
export function checkPublishable(steps: readonly StoredStep[]): void {
  const index = steps.findIndex(({ provider }) => provider !== undefined && isCustomReference(provider))
  if (index >= 0)
    throw fail('bad_steps', {
      message: `"steps[${index}].provider" is a server of your organisation, which nobody else can reach: a public collection cannot name it. Take the step out, or keep the collection private.`,
    })
}

/** Returns steps for other organisations without the names of own servers. Versions from before publication may contain such names. */
export const withoutOwnServers = (steps: readonly StoredStep[]): readonly StoredStep[] =>
  steps.map(step => (step.provider !== undefined && isCustomReference(step.provider) ? { model: step.model, provider: 'byoe' } : step))

/** Returns true when two contents are the same. An edit that changes nothing creates no version. */
export function isSameContent(a: CollectionContent, b: CollectionContent): boolean {
  return a.name === b.name && a.modelId === b.modelId && a.readmeMd === b.readmeMd && isSameSteps(a.steps, b.steps)
}

const isSameSteps = (a: readonly StoredStep[], b: readonly StoredStep[]): boolean =>
  a.length === b.length && a.every((step, index) => step.model === b[index]?.model && step.provider === b[index]?.provider)
