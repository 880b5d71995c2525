import { api } from '../../../api/call.ts'
import type { ComboOption } from '../../../ui/forms/combobox.tsx'

const membersMax = 200
const foundMax = 20

/** Finds members by a part of their name or address, among the first of the organisation. Those in `without` are left out. */
export async function findMembers(words: string, without: readonly number[], signal: AbortSignal): Promise<readonly ComboOption[]> {
  const { members } = await api('listMembers', { query: { limit: membersMax }, signal })
  const fits = (text: string | null): boolean => text?.toLowerCase().includes(words.toLowerCase()) === true
  return members
    .filter(({ uid, name, email }) => !without.includes(uid) && (fits(name) || fits(email)))
    .slice(0, foundMax)
    .map(({ uid, name, email }) => ({ value: String(uid), label: name ?? email, ...(name === null ? {} : { hint: email }) }))
}

/** Finds objects whose key begins with a text. */
export async function findKeys(words: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const { keys } = await api('listConsole', { query: { prefix: words.trim(), limit: foundMax }, signal })
  return keys.map(({ key }) => ({ value: key, label: key }))
}
