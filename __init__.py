"""tailrace"""
