import { useEffect, useState } from 'react'
import { api } from '../../api/call.ts'
import { session } from '../../api/connection.ts'
import { queryClient } from '../../api/queries.ts'
import { useStore } from '../../api/store.ts'
import { shellText } from '../../text/common.ts'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import type { Me } from '../me.tsx'
import { onTabNews } from './session-news.ts'
import { signedInPath } from './signed-in-tab.tsx'

const signInAddress = `/auth?${new URLSearchParams({ return_to: signedInPath })}`

/**
 * The one dialog for a session that has ended. The page below stays with all that was typed. It goes away when the same person has signed in again, in
 * another tab. When it was another person or organisation, the page is loaded again, because nothing of one may be shown to the other.
 */
export function SessionDialog({ me }: { readonly me: Me }) {
  const state = useStore(session)
  const [isOther, setOther] = useState(false)
  useEffect(() => {
    // A tab that is hidden looks too when another tab has signed in, because it may have the stream of hints of all tabs.
    const look = async (isNews: boolean): Promise<void> => {
      if (session.get() !== 'ended' || (!isNews && document.visibilityState !== 'visible')) return
      const now = await api('me').catch(() => null)
      if (now === null) return
      if (now.user.id !== me.user.id || now.org.id !== me.org.id) {
        setOther(true)
        location.reload()
        return
      }
      session.set('active')
      await queryClient.invalidateQueries()
    }
    const onLook = (): void => void look(false)
    const end = onTabNews(news => (news === 'signed-in' ? void look(true) : location.reload()))
    document.addEventListener('visibilitychange', onLook)
    window.addEventListener('focus', onLook)
    return () => {
      end()
      document.removeEventListener('visibilitychange', onLook)
      window.removeEventListener('focus', onLook)
    }
  }, [me])
  if (state === 'active') return null
  return (
    <Dialog
      title={shellText.endedTitle}
      width="sm"
      isDismissible={false}
      onClose={() => undefined}
      actions={
        <a className="button button-primary button-md" href={signInAddress} target="_blank" rel="noopener">
          {shellText.signIn}
        </a>
      }
    >
      <p className="quiet">{isOther ? shellText.endedOther : shellText.ended}</p>
    </Dialog>
  )
}
