import type { KeyLook, PlatformKeys } from '../../gateway/operator/platform-keys.ts'
import { keyVariableOf } from '../../platform/config.ts'
import type { Finding } from './finding.ts'

/** Tries the provider keys of the operator with free requests, and reports keys that a provider refuses or that could not be tried. */
export async function checkProviderKeys(keys: Pick<PlatformKeys, 'look'>): Promise<Finding[]> {
  const looks = await keys.look()
  const accepted = looks.filter(({ outcome }) => outcome.kind === 'ok' && outcome.proven).map(({ provider }) => provider.id)
  return [
    ...(accepted.length === 0 ? [] : [{ what: 'provider keys', state: 'ok' as const, detail: `accepted by ${accepted.join(', ')}` }]),
    ...looks.flatMap(look => findingOf(look) ?? []),
  ]
}

function findingOf(look: KeyLook): Finding | null {
  const { provider, outcome } = look
  const what = `key of ${provider.id}`
  switch (outcome.kind) {
    case 'rejected':
      return { what, state: 'wrong', detail: refusedSentence(look) }
    case 'unreachable':
      return { what, state: 'warning', detail: `could not be tried: ${whyNot(outcome.why)}` }
    case 'ok':
      return outcome.proven ? null : { what, state: 'ok', detail: `could not be proven, because ${provider.name} answers without a key too` }
  }
}

/** Says that a provider refuses the key, and which setting to correct. It contains no part of the key. */
export function refusedSentence({ provider }: KeyLook): string {
  const variable = provider.keyVariable ?? keyVariableOf(provider.id)
  return `${provider.name} refuses the key in ${variable}, so calls to it fail. Correct ${variable} and restart.`
}

/** Writes the code of a request that was given up as words. */
function whyNot(why: string): string {
  return why === 'TimeoutError' || why === 'AbortError' ? 'no answer within 3 s' : why
}
