import { useEffect, useRef } from 'react'
import { useStore } from '../../api/store.ts'
import { Kbd } from '../../ui/forms/button.tsx'
import { Segmented } from '../../ui/forms/choices.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { letterKeys } from '../preferences.ts'
import { type Command, openWindow } from './command-list.ts'

/** How long the console waits for the letter after `g`. */
const secondKeyMs = 1_200

/**
 * Returns whether the key goes into a text. The editor is in a shadow root, which the target of an event hides. A field of a closed window has the focus
 * until the browser draws again.
 */
function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath()
  if (!(target instanceof HTMLElement) || target.closest('dialog:not([open])') !== null) return false
  return target.closest('input, textarea, select, [contenteditable]') !== null
}

/** Follows the keyboard: Ctrl-K and `/` open the palette, `?` the help, and the keys of a command run it. */
export function useShortcuts(commands: readonly Command[]): void {
  const first = useRef<{ key: string; atMs: number } | null>(null)
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        if (document.querySelector('dialog[open]:not(.palette)') === null) openWindow.set(openWindow.get() === 'palette' ? 'none' : 'palette')
        return
      }
      const isElsewhere = event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || document.querySelector('dialog[open]') !== null
      if (isElsewhere || letterKeys.get() === 'off') return
      const before = first.current
      first.current = null
      if (event.key === '/') openWindow.set('palette')
      else if (event.key === '?') openWindow.set('help')
      else if (before !== null && event.timeStamp - before.atMs < secondKeyMs) commands.find(({ keys }) => keys === `${before.key} ${event.key}`)?.run()
      else if (commands.some(({ keys }) => keys?.startsWith(`${event.key} `))) first.current = { key: event.key, atMs: event.timeStamp }
      else {
        const found = commands.find(({ keys }) => keys === event.key)
        if (!found) return
        found.run()
      }
      event.preventDefault()
    }
    window.addEventListener('keydown', onKeyDown)
    return () => window.removeEventListener('keydown', onKeyDown)
  }, [commands])
}

const everywhere = [
  ['Ctrl K', 'Search and commands'],
  ['/', 'Search and commands'],
  ['?', 'This list'],
  ['Esc', 'Close what is open'],
  ['j', 'Next row of a list'],
  ['k', 'Row before'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row, where several can be selected'],
] as const

/** The list of all keys. */
export function ShortcutHelp({ commands }: { readonly commands: readonly Command[] }) {
  const letters = useStore(letterKeys)
  const ofCommands = commands.flatMap(({ keys, label }) => (keys === undefined ? [] : [[keys, label] as const]))
  return (
    <Dialog title="Keyboard" width="sm" onClose={() => openWindow.set('none')}>
      <dl className="shortcuts">
        {[...everywhere, ...ofCommands].map(([keys, label]) => (
          <div key={`${keys}${label}`}>
            <dt>{label}</dt>
            <dd>
              {keys.split(' ').map(key => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <div className="shortcuts-off">
        <span>Letters are shortcuts</span>
        <Segmented
          label="Letters are shortcuts"
          value={letters}
          onChange={value => letterKeys.set(value)}
          options={[
            { value: 'on', label: 'On' },
            { value: 'off', label: 'Off' },
          ]}
        />
      </div>
    </Dialog>
  )
}
