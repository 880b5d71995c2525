import { Link } from '@tanstack/react-router'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { type Places, rootsOf } from '../places.ts'
import { text } from '../text.ts'

/** The top of memory: its roots, with who uses them. */
export function RootView({ places, onNew }: { readonly places: Places; readonly onNew: () => void }) {
  return (
    <Page
      title={text.title}
      intro={text.intro}
      actions={
        <Button look="primary" icon="plus" onClick={onNew}>
          {text.newFile}
        </Button>
      }
    >
      <ul className="memory-roots">
        {rootsOf(places).map(({ prefix, label, icon, about }) => (
          <li key={prefix}>
            <Link to="/memory/$" params={{ _splat: prefix.slice(0, -1) }} className="memory-root">
              <span className="memory-root-icon">
                <Icon name={icon} />
              </span>
              <span>
                <strong>{label}</strong>
                <span className="quiet">{about}</span>
              </span>
              <Icon name="right" />
            </Link>
          </li>
        ))}
      </ul>
    </Page>
  )
}
