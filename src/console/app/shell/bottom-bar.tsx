import { useNavigate } from '@tanstack/react-router'
import { Icon } from '../../ui/icon.tsx'
import { Menu, MenuHeading, MenuItem } from '../../ui/overlays/menu.tsx'
import type { Me } from '../me.tsx'
import { groupsFor, NavLink } from './side-bar.tsx'

/** The navigation of a phone: a few pages, and the others under More. */
export function BottomBar({ me }: { readonly me: Me }) {
  const navigate = useNavigate()
  const groups = groupsFor(me)
  const isOnPhone = ({ isOnPhone = false }: { isOnPhone?: boolean }): boolean => isOnPhone
  const others = groups
    .map(({ title, entries }) => ({ title, entries: entries.filter(entry => !isOnPhone(entry)) }))
    .filter(({ entries }) => entries.length > 0)
  return (
    <nav className="bottom" aria-label="Pages, short">
      {groups
        .flatMap(({ entries }) => entries)
        .filter(isOnPhone)
        .map(entry => (
          <NavLink key={entry.to} entry={entry} />
        ))}
      {others.length > 0 && (
        <Menu
          label="More pages"
          triggerClass="nav-link"
          trigger={
            <>
              <Icon name="menu" />
              <span>More</span>
            </>
          }
        >
          {others.map(({ title, entries }) => (
            <div key={title}>
              <MenuHeading>{title}</MenuHeading>
              {entries.map(({ to, label, icon }) => (
                <MenuItem key={to} icon={icon} onClick={() => void navigate({ to })}>
                  {label}
                </MenuItem>
              ))}
            </div>
          ))}
        </Menu>
      )}
    </nav>
  )
}
