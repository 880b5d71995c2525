import { useQuery } from '@tanstack/react-query'
import { Outlet, useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { apiQuery } from '../../api/queries.ts'
import { useStore } from '../../api/store.ts'
import { shellText } from '../../text/common.ts'
import { Boundary, ErrorPanel } from '../../ui/layout/error-panel.tsx'
import { Toasts } from '../../ui/overlays/toast.tsx'
import { openWindow } from '../commands/command-list.ts'
import { CommandPalette } from '../commands/command-palette.tsx'
import { ShortcutHelp, useShortcuts } from '../commands/shortcuts.tsx'
import { type Me, MeProvider } from '../me.tsx'
import { grouping } from '../preferences.ts'
import { SessionDialog } from '../session/session-dialog.tsx'
import { BottomBar } from './bottom-bar.tsx'
import { useLive } from './live-dot.tsx'
import { Notices } from './notices.tsx'
import { SideBar, TopBar } from './side-bar.tsx'
import { useCommands } from './use-commands.ts'
import { useWait, WaitNote } from './wait-note.tsx'

/** The frame of every page. It reads first who is signed in, and sends a person without a session to sign in. */
export function Shell() {
  const me = useQuery({ ...apiQuery('me'), refetchOnWindowFocus: 'always' })
  const isStranger = me.data === undefined && me.isError && apiErrorOf(me.error).status === 401
  useEffect(() => {
    if (isStranger) location.replace(`/auth?${new URLSearchParams({ return_to: location.pathname + location.search })}`)
  }, [isStranger])
  if (me.data) return <Frame me={me.data} />
  return (
    <main className="splash" aria-busy={!me.isError}>
      {me.isError && !isStranger ? <ErrorPanel error={me.error} onRetry={() => void me.refetch()} /> : <span className="visually-hidden">Loading</span>}
    </main>
  )
}

function Frame({ me }: { readonly me: Me }) {
  const commands = useCommands(me)
  const open = useStore(openWindow)
  const { pathname } = useLocation()
  useSameSession(me)
  useLive()
  const untilMs = useWait()
  useShortcuts(commands)
  // The numbers of the page are written again when their grouping changes.
  const numbers = useStore(grouping)
  return (
    <MeProvider me={me}>
      <a className="skip" href="#content">
        {shellText.skip}
      </a>
      <div className="shell">
        <SideBar me={me} />
        <TopBar me={me} />
        <div className="shell-main">
          <Notices />
          <main id="content" tabIndex={-1} className="content" key={numbers}>
            <Boundary key={pathname}>
              <Outlet />
            </Boundary>
          </main>
        </div>
        <BottomBar me={me} />
      </div>
      {open === 'palette' && <CommandPalette commands={commands} />}
      {open === 'help' && <ShortcutHelp commands={commands} />}
      <SessionDialog me={me} />
      <Toasts>{untilMs !== null && <WaitNote untilMs={untilMs} />}</Toasts>
    </MeProvider>
  )
}

/** Loads the page again when the session works in another organisation or for another person than what the page shows. */
function useSameSession(me: Me): void {
  const first = useRef(`${me.user.id} ${me.org.id}`)
  useEffect(() => {
    if (first.current !== `${me.user.id} ${me.org.id}`) location.reload()
  }, [me])
}
