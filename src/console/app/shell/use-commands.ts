import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useStore } from '../../api/store.ts'
import { clients } from '../../pages/connect/text.ts'
import { type Command, openWindow, pageCommands } from '../commands/command-list.ts'
import type { Me } from '../me.tsx'
import { isShownTo, navigation } from '../navigation.ts'
import { theme } from '../preferences.ts'
import { signOut } from './sign-out.ts'

/** Returns all commands that the person has now: those of the page first, then the pages, then what is the same everywhere. */
export function useCommands(me: Me): readonly Command[] {
  const navigate = useNavigate()
  const ofPage = useStore(pageCommands)
  return useMemo(() => {
    const pages = navigation
      .flatMap(({ entries }) => entries)
      .filter(entry => isShownTo(me, entry))
      .map(({ to, label, icon, letter }): Command => ({ id: `go-${to}`, label, group: 'Go to', icon, keys: `g ${letter}`, run: () => void navigate({ to }) }))
    const themes = (['light', 'dark', 'system'] as const).map(
      (value): Command => ({
        id: `theme-${value}`,
        label: value === 'system' ? 'As the system' : value === 'dark' ? 'Dark' : 'Light',
        group: 'Theme',
        icon: value === 'system' ? 'screen' : value === 'dark' ? 'moon' : 'sun',
        run: () => theme.set(value),
      }),
    )
    const start: Command = { id: 'start', label: 'Get started', group: 'Help', icon: 'play', run: () => void navigate({ to: '/start' }) }
    const connects = clients.map(
      ({ id, label }): Command => ({
        id: `connect-${id}`,
        label: `Connect ${label}`,
        group: 'Connect',
        icon: 'link',
        run: () => void navigate({ to: '/keys', search: { connect: id } }),
      }),
    )
    const help: Command = { id: 'help', label: 'Keyboard shortcuts', group: 'Help', icon: 'info', keys: '?', run: () => openWindow.set('help') }
    const leave: Command = { id: 'sign-out', label: 'Sign out', group: 'Account', icon: 'leave', run: () => void signOut() }
    return [...ofPage, ...pages, ...connects, start, ...themes, help, leave]
  }, [me, navigate, ofPage])
}
