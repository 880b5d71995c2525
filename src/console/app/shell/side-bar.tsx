import { Link } from '@tanstack/react-router'
import { shellText } from '../../text/common.ts'
import { Kbd } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { openWindow } from '../commands/command-list.ts'
import type { Me } from '../me.tsx'
import { isShownTo, type NavEntry, navigation } from '../navigation.ts'
import { AccountMenu } from './account-menu.tsx'
import { LiveDot } from './live-dot.tsx'
import { OrgMenu } from './org-menu.tsx'

/** Returns the groups of the navigation with the entries that the person may see. */
export const groupsFor = (me: Me) =>
  navigation.map(({ title, entries }) => ({ title, entries: entries.filter(entry => isShownTo(me, entry)) })).filter(({ entries }) => entries.length > 0)

/** A link of the navigation. The page that is shown has `aria-current`. */
export function NavLink({ entry }: { readonly entry: NavEntry }) {
  return (
    <Link to={entry.to} activeOptions={{ exact: entry.to === '/' }} className="nav-link" title={entry.label}>
      <Icon name={entry.icon} />
      <span className="side-text">{entry.label}</span>
    </Link>
  )
}

/** The navigation of a wide screen. Between 640 and 1,100 pixels it shows icons only. */
export function SideBar({ me }: { readonly me: Me }) {
  return (
    <header className="side">
      <div className="side-inner">
        <OrgMenu me={me} />
        <button type="button" className="side-search" onClick={() => openWindow.set('palette')} title={shellText.search}>
          <Icon name="search" />
          <span className="side-text">{shellText.search}</span>
          <Kbd>Ctrl K</Kbd>
        </button>
        <nav className="side-nav" aria-label="Pages">
          {groupsFor(me).map(({ title, entries }) => (
            <div key={title} className="nav-group">
              <h2>{title}</h2>
              <ul>
                {entries.map(entry => (
                  <li key={entry.to}>
                    <NavLink entry={entry} />
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <LiveDot />
        <AccountMenu me={me} />
      </div>
    </header>
  )
}

/** The bar at the top of a narrow screen. */
export function TopBar({ me }: { readonly me: Me }) {
  return (
    <header className="top">
      <OrgMenu me={me} />
      <LiveDot />
      <button type="button" className="icon-button" aria-label={shellText.search} onClick={() => openWindow.set('palette')}>
        <Icon name="search" />
      </button>
      <AccountMenu me={me} />
    </header>
  )
}
