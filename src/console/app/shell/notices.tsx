import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { connection } from '../../api/connection.ts'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { useStore } from '../../api/store.ts'
import { shellText } from '../../text/common.ts'
import { Icon } from '../../ui/icon.tsx'

const askAgainMs = 5_000

/** Lines above the page: the gateway is away, or only the sandbox answers. */
export function Notices() {
  const state = useStore(connection)
  const health = useQuery(apiQuery('health'))
  const providers = health.data?.providers.filter(({ configured }) => configured) ?? []
  const isSandbox = providers.length > 0 && providers.every(({ id }) => id === 'sandbox')
  useComingBack(state === 'offline')
  return (
    <div className="notices" role="status">
      {state === 'offline' && (
        <p className="notice notice-bad">
          <Icon name="warn" />
          {shellText.offline}
        </p>
      )}
      {isSandbox && (
        <p className="notice notice-sandbox">
          <Icon name="info" />
          {shellText.sandbox}
        </p>
      )}
    </div>
  )
}

/** Asks for the gateway until it answers, and then reads everything again that the page shows. */
function useComingBack(isAway: boolean): void {
  useEffect(() => {
    if (!isAway) return
    const ask = async (): Promise<void> => {
      const health = await queryClient.fetchQuery({ ...apiQuery('health'), staleTime: 0, retry: false }).catch(() => null)
      if (health !== null) await queryClient.invalidateQueries()
    }
    const timer = setInterval(() => void ask(), askAgainMs)
    return () => clearInterval(timer)
  }, [isAway])
}
