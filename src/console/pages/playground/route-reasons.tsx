import { useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../api/call.ts'
import { Loaded } from '../../ui/layout/panel.tsx'
import { RouteList } from '../steps/route-list.tsx'
import { type ChatBody, sendWithToken } from './run/stream-chat.ts'
import { reasonText } from './text.ts'

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
          <RouteList candidates={candidates} />
        </div>
      )}
    </Loaded>
  )
}
