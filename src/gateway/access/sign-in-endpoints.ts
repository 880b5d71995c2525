export const signInEndpoints = {}
