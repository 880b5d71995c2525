import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { leaving } from '../../api/connection.ts'
import { toast } from '../../ui/overlays/toast.tsx'
import { tellTabs } from '../session/session-news.ts'

/** Ends the session and goes to the page for signing in. The other tabs leave, too. */
export async function signOut(): Promise<void> {
  leaving.set(true)
  try {
    await api('signOut')
  } catch (error) {
    leaving.set(false)
    toast(apiErrorOf(error).message, 'bad')
    return
  }
  tellTabs('signed-out')
  location.assign('/auth?return_to=/console')
}
