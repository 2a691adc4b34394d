"""Which hidden features does a learner find, and at which number of samples?"""
