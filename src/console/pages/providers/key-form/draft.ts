import type { Accepting } from '../search.ts'
import { credentialFields } from '../text.ts'
import type { KeyBody } from '../use-providers.ts'

/** A key or credentials as a person typed them. */
export interface KeyDraft {
  readonly kind: 'key' | 'credentials'
  readonly key: string
  /** Fields of credentials by name. */
  readonly fields: Readonly<Record<string, string>>
  /** The text of the file of a service account. */
  readonly file: string
  readonly values: Readonly<Record<string, string>>
  readonly models: string
  readonly label: string
  readonly isFirst: boolean
}

export const emptyDraft: KeyDraft = { kind: 'key', key: '', fields: {}, file: '', values: {}, models: '', label: '', isFirst: false }

/** Returns the kind that the provider takes: what the person chose, if it is possible. */
export const kindOf = ({ takes_key: takesKey, credentials }: Accepting, { kind }: KeyDraft): KeyDraft['kind'] =>
  credentials === undefined ? 'key' : takesKey === false ? 'credentials' : kind

/** Reads the file of a service account. Null while it is none. The gateway reads the same fields and checks them. */
export function fileFields(file: string): Record<string, string> | null {
  try {
    const value: unknown = JSON.parse(file)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    return Object.values(value).every(one => typeof one === 'string') ? (value as Record<string, string>) : null
  } catch {
    return null
  }
}

/** Returns what is sent. Null while something that the provider needs is missing. */
export function bodyOf(provider: Accepting, draft: KeyDraft): KeyBody | null {
  const secret = secretOf(provider, draft)
  const values = Object.fromEntries((provider.values ?? []).map(name => [name, (draft.values[name] ?? '').trim()]))
  if (secret === null || Object.values(values).includes('')) return null
  const models = [...new Set(draft.models.split(/[\s,]+/).filter(one => one !== ''))]
  return {
    ...secret,
    ...(Object.keys(values).length === 0 ? {} : { values }),
    ...(models.length === 0 ? {} : { models }),
    ...(draft.label.trim() === '' ? {} : { label: draft.label.trim() }),
    ...(draft.isFirst ? { always_use: true } : {}),
  }
}

function secretOf(provider: Accepting, draft: KeyDraft): Pick<KeyBody, 'key' | 'credentials'> | null {
  if (kindOf(provider, draft) === 'key') return draft.key.trim() === '' ? null : { key: draft.key.trim() }
  if (provider.credentials === 'google') {
    const credentials = fileFields(draft.file)
    return credentials === null ? null : { credentials }
  }
  const fields = credentialFields[provider.credentials ?? 'aws']
  const given = fields.map(([name]) => [name, (draft.fields[name] ?? '').trim()] as const)
  if (given.some(([name, value]) => value === '' && name !== 'session_token')) return null
  return { credentials: Object.fromEntries(given.filter(([, value]) => value !== '')) }
}
