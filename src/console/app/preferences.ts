import { createStore, type Store } from '../api/store.ts'
import { type Grouping, setGrouping } from '../ui/format/numbers.ts'

/** The choices that a person made in this browser. None of them is a secret. */
export type Theme = 'system' | 'light' | 'dark'

/** Makes a store that keeps its value in this browser. A browser that keeps nothing gets the default each time. */
function kept<T extends string>(name: string, values: readonly T[], fallback: T, apply: (value: T) => void): Store<T> {
  const key = `brigade-${name}`
  let saved: string | null = null
  try {
    saved = localStorage.getItem(key)
  } catch {
    // The person has switched storage off.
  }
  const store = createStore<T>(values.find(value => value === saved) ?? fallback)
  const onChange = (): void => {
    apply(store.get())
    try {
      localStorage.setItem(key, store.get())
    } catch {
      // The choice holds until the page is closed.
    }
  }
  apply(store.get())
  store.subscribe(onChange)
  return store
}

/** Light, dark, or as the system. app/theme-boot.js reads the same value before the page is drawn. */
export const theme = kept<Theme>('theme', ['system', 'light', 'dark'], 'system', value => {
  if (value === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = value
})

/** How numbers are grouped. */
export const grouping = kept<Grouping>('grouping', ['indian', 'international'], 'indian', setGrouping)

/** Whether single letters are shortcuts. A person who speaks to the computer may have to switch them off. */
export const letterKeys = kept<'on' | 'off'>('letter-keys', ['on', 'off'], 'on', () => undefined)
