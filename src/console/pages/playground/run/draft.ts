/** The unsent message and the settings, kept for this tab only. Nothing that was sent or answered is kept. */
import { noSettings, type Settings } from './conversation.ts'

export interface Draft extends Settings {
  readonly prompt: string
}

const charsMax = 200_000

/** Returns the name of the draft of a person in an organisation, so that another one who signs in in this tab does not see it. */
export const draftName = (uid: number | null, orgId: number): string => `brigade-playground-${orgId}-${uid ?? 0}`

/** Reads the draft. A browser that keeps nothing has an empty one. */
export function readDraft(name: string): Draft {
  const empty = { ...noSettings, prompt: '' }
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(name) ?? '{}')
    if (typeof kept !== 'object' || kept === null) return empty
    const text = (field: keyof Draft): string => {
      const value = (kept as Record<string, unknown>)[field]
      return typeof value === 'string' ? value : ''
    }
    return { prompt: text('prompt'), system: text('system'), temperature: text('temperature'), maxTokens: text('maxTokens') }
  } catch {
    return empty
  }
}

/** Keeps the draft. One that is too long for the storage is only in the page. */
export function writeDraft(name: string, draft: Draft): void {
  try {
    const text = JSON.stringify(draft)
    if (text.length <= charsMax) sessionStorage.setItem(name, text)
  } catch {
    // The draft holds until the page is closed.
  }
}
