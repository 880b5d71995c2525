import { useEffect } from 'react'
import { createStore } from '../../api/store.ts'
import type { IconName } from '../../ui/icon.tsx'

/** Something that a person can do from the palette. */
export interface Command {
  readonly id: string
  readonly label: string
  readonly group: string
  readonly icon: IconName
  /** The keys that do the same, for display: `g k` or `n`. */
  readonly keys?: string
  readonly run: () => void
}

/** Which window of the commands is open. */
export const openWindow = createStore<'none' | 'palette' | 'help'>('none')

/** The commands of the page that is shown. */
export const pageCommands = createStore<readonly Command[]>([])

/** Offers commands in the palette while a page is shown. A command with a single letter in `keys` also has this letter as a shortcut. */
export function usePageCommands(commands: readonly Command[]): void {
  useEffect(() => {
    pageCommands.set([...pageCommands.get().filter(one => !commands.some(({ id }) => id === one.id)), ...commands])
    return () => pageCommands.set(pageCommands.get().filter(one => !commands.some(({ id }) => id === one.id)))
  }, [commands])
}
