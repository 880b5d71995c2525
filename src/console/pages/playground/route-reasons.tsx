import { useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../api/call.ts'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { type ChatBody, sendWithToken } from './run/stream-chat.ts'
import { reasonText, text } from './text.ts'

type Preview = ReplyOf<'previewRoute'>

interface RouteReasonsProps {
  readonly body: ChatBody
  /** A name of the call, for the cache. */
  readonly name: string
}

/** Why the call took its route: the rule that chose, and every route that was looked at. It asks as the agent that called. */
export function RouteReasons({ body, name }: RouteReasonsProps) {
  const preview = useQuery({
    queryKey: ['playground-route', name],
    queryFn: async ({ signal }): Promise<Preview> => (await sendWithToken('/me/route/preview', body, signal)).json(),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <Loaded query={preview}>
      {({ reason, candidates }) => (
        <div className="play-why">
          <p>{reasonText(reason)}</p>
          <Routes title={text.dialed} routes={candidates.filter(({ eligible }) => eligible)} isEligible />
          <Routes title={text.notDialed} routes={candidates.filter(({ eligible }) => !eligible)} isEligible={false} />
        </div>
      )}
    </Loaded>
  )
}

interface RoutesProps {
  readonly title: string
  readonly routes: Preview['candidates']
  readonly isEligible: boolean
}

const shownMax = 12

function Routes({ title, routes, isEligible }: RoutesProps) {
  if (routes.length === 0) return null
  const List = isEligible ? 'ol' : 'ul'
  return (
    <div>
      <p className="play-why-title">{title}</p>
      <List>
        {routes.slice(0, shownMax).map(({ model, provider, why }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes, and a chain may name a route twice.
          <li key={index}>
            <Icon name={isEligible ? 'good' : 'bad'} size={14} />
            <span>
              <code>{provider === null ? model : `${provider}/${model}`}</code> {why}
            </span>
          </li>
        ))}
        {routes.length > shownMax && <li className="quiet">and {routes.length - shownMax} more</li>}
      </List>
    </div>
  )
}
