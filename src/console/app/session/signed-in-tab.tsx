import { useEffect } from 'react'
import { shellText } from '../../text/common.ts'
import { tellTabs } from './session-news.ts'

/** The path to which a sign-in returns that another tab waits for. */
export const signedInPath = '/console/signed-in'

export const isSignedInTab = (): boolean => location.pathname === signedInPath

/** The tab in which a person signed in again. It notifies the tab that waits, and can be closed. */
export function SignedInTab() {
  useEffect(() => {
    document.title = 'Signed in · Brigade'
    tellTabs('signed-in')
  }, [])
  return (
    <main className="splash">
      <h1>{shellText.signedIn}</h1>
      <a href="/console">Or open the console here</a>
    </main>
  )
}
