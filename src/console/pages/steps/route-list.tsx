import type { ReplyOf } from '../../api/call.ts'
import { Icon } from '../../ui/icon.tsx'
import './steps.css'
import { text } from './text.ts'

type Candidates = ReplyOf<'previewRoute'>['candidates']

const shownMax = 12

/** The routes that a call would take, in the order of their dials, and those that it would not take, each with the reason. */
export function RouteList({ candidates }: { readonly candidates: Candidates }) {
  return (
    <>
      <Routes title={text.dialed} routes={candidates.filter(({ eligible }) => eligible)} isEligible />
      <Routes title={text.notDialed} routes={candidates.filter(({ eligible }) => !eligible)} isEligible={false} />
    </>
  )
}

interface RoutesProps {
  readonly title: string
  readonly routes: Candidates
  readonly isEligible: boolean
}

function Routes({ title, routes, isEligible }: RoutesProps) {
  if (routes.length === 0) return null
  const List = isEligible ? 'ol' : 'ul'
  return (
    <div className="route-list">
      <p className="route-list-title">{title}</p>
      <List aria-label={title}>
        {routes.slice(0, shownMax).map(({ model, provider, why }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes, and a chain may name a route twice.
          <li key={index}>
            <Icon name={isEligible ? 'good' : 'bad'} size={14} />
            <span>
              <code>{provider === null ? model : `${provider}/${model}`}</code> {why}
            </span>
          </li>
        ))}
        {routes.length > shownMax && <li className="quiet">{text.more(routes.length - shownMax)}</li>}
      </List>
    </div>
  )
}
