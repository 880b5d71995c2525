import { Link } from '@tanstack/react-router'
import { Icon } from '../../../ui/icon.tsx'
import { crumbsOf, type Places } from '../places.ts'
import { text } from '../text.ts'

/** The folders above a path, each with its page. */
export function Crumbs({ places, path }: { readonly places: Places; readonly path: string }) {
  const above = crumbsOf(places, path).slice(0, -1)
  return (
    <nav aria-label="Folders above" className="crumbs">
      <span>
        <Link to="/memory/$" params={{ _splat: '' }}>
          {text.title}
        </Link>
        <Icon name="right" size={12} />
      </span>
      {above.map(crumb => (
        <span key={crumb.path}>
          <Link to="/memory/$" params={{ _splat: crumb.path }}>
            {crumb.label}
          </Link>
          <Icon name="right" size={12} />
        </span>
      ))}
    </nav>
  )
}
